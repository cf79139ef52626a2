"""Statements of real answers, true and with one thing swapped: how well are words of models told apart?"""
