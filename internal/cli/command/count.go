package command

import "fmt"

// Count is "1 flow", "3 flows".
func Count(n uint32, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Counts is count for words that change in other ways.
func Counts(n uint32, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
