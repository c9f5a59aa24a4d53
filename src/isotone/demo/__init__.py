"""The content of `isotone demo`: sample tables for every scenario, and a tour through them.

samples      all sample tables, and how they are filled
chapter      a chapter of the tour: story, question, code
sorting      order: text, numbers, times, ids, directions, parents with their children
github       GitHub's shape in one table
filtering    reading less: ranges, composite keys, sparse indexes, filters
structured   structures: a sorted set, a leaderboard, a feed, a queue
tour         the tour's calls: a question is asked, measured, and drawn on its collection
"""
