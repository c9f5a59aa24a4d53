"""Shows the site on this machine, and builds it again when a page changes: `make docs-serve`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.docs.pages import ROOT

ADDRESS = "127.0.0.1:8001"
_SECONDS = 1.0


def newest() -> float:
    """When one of the sources of the site was last written."""
    folders = (ROOT / "docs", ROOT / "website", ROOT / "src" / "isotone")
    files = [*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.*"))]
    return max(
        path.stat().st_mtime for path in files if path.suffix in (".md", ".py", ".css", ".svg")
    )


def main() -> int:
    """Assemble the pages, serve them, and assemble them again after each change; the server watches the result."""
    assemble = [sys.executable, "-m", "website.assemble", *sys.argv[1:]]
    seen = newest()
    subprocess.run(assemble, cwd=ROOT, check=True)
    zensical = str(Path(sys.executable).with_name("zensical"))
    command = [zensical, "serve", "--config-file", "build/zensical.toml", "--dev-addr", ADDRESS]
    with subprocess.Popen(command, cwd=ROOT) as server:
        try:
            while server.poll() is None:
                time.sleep(_SECONDS)
                if newest() > seen:
                    seen = newest()
                    subprocess.run(assemble, cwd=ROOT, check=False)
        except KeyboardInterrupt:
            server.terminate()
    return server.returncode or 0


if __name__ == "__main__":
    sys.exit(main())
