"""Leaderboards: what is stored (`entry`) and where (`board`), written and read; `leaderboard` is what users see."""
