from build_fixtures import *  # noqa: F403  # those that it lists
