"""Materialised views: tables that follow other tables, as declared, exactly and without user code."""
