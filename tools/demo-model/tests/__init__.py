"""Tests of the data, the vocabulary and the file's size. They need NumPy and tokenizers, and no GPU:

    python3 -m unittest discover -s tools/demo-model -t tools/demo-model
"""
