"""What every page of unpooled stands on: server, guard, sessions, layout, style and script."""
