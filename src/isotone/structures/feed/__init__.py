"""Time-ordered timelines: posts, who follows whom, the fan-out, and how all are merged."""
