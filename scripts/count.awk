# Reads `go test -v` and prints a line per package, all of what a failed package said, what was
# skipped, and the counts.
/^[ \t]*--- PASS:/ { passed++ }
/^[ \t]*--- FAIL:/ { failed++ }
/^[ \t]*--- SKIP: [A-Za-z]*Helper / { next } # not a test but a process that one starts
/^[ \t]*--- SKIP:/ { skipped++; skips = skips "  " $3 "\n" }
/^ok[ \t]/         { print; packages++; said = ""; fflush(); next }
/^FAIL\t/          { printf "%s", said; print; packages++; broken++; said = ""; fflush(); next }
/no test files\]/  { said = ""; next }
                   { said = said $0 "\n" }
END {
	printf "%s", said # a compiler's errors, or a crash
	if (skipped && ENVIRON["SCAFFOLD_ROOT_TESTS"] != "0") printf "skipped:\n%s", skips
	printf "%d packages: %d tests passed, %d failed, %d skipped", packages, passed, failed, skipped
	print (broken ? "; " broken " packages FAILED" : "")
}
