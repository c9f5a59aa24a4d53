"""What holds for all tests: an example is judged by what it finds, never by how long it took.

By default Hypothesis fails a test whose example takes more than 200 ms, or whose examples are slow to
make. On a machine that runs other things as well, both measure the machine.
"""

from hypothesis import HealthCheck, settings

settings.register_profile("isotone", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("isotone")
