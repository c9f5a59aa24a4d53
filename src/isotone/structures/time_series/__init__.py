"""Time series: how points and summaries are stored (`entries`), written and read; `time_series` is what users see."""
