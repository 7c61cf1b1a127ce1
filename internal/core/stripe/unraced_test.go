//go:build !race

package stripe

const raced = false
