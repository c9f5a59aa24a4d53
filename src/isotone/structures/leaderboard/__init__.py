"""Leaderboards: how a board is stored (`entry`, `board`), written and read; `leaderboard` is what users see."""
