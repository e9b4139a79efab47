"""Labels: codings of spans, spans themselves, word segmentation."""
