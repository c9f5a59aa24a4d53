"""Time series: what is stored (`entries`) and where (`plan`), written and read; `time_series` is what users see."""
