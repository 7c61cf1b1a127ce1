// Package liveness says from unanswered probes whether hosts live, docs/protocol.md §5.3. It counts probes and
// never looks at a clock, so a delay of the one who asks accuses nobody.
package liveness
