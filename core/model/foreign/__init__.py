"""Model files of other programs: each reader makes one of our models that tags as the file would."""
