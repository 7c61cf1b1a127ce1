// Package process reads what the processes that are measured take, and gives them a part of a processor.
package process
