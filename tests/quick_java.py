"""Options for Java programs that tests start: most of them end after a second or two.

By default, Java compiles what such a program executes twice, the second time for speed that nothing uses, and
collects its garbage with several threads. That takes a third to a half of the CPU time of the program.
"""

QUICK_JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
QUICK_JAVAC = tuple(f"-J{option}" for option in QUICK_JAVA)
QUICK_MAVEN = " ".join(QUICK_JAVA)
"""The variable `MAVEN_OPTS`. A build with Maven then takes half of its CPU time."""
