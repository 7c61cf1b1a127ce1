package checks

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Allowed commands are what ready checks may run on this host: by a name that the configuration gives them, or by the
// very line. The network's policy only selects one (docs/protocol.md §7: a controller that was broken into).
type Allowed map[string]string

// namedCommand is an entry NAME=COMMAND; any other one is a command line.
var namedCommand = regexp.MustCompile(`(?s)^([a-z0-9][a-z0-9.-]*)=(.*)$`)

// ParseAllowed reads entries COMMAND, or NAME=COMMAND.
func ParseAllowed(entries []string) (Allowed, error) {
	list := Allowed{}
	for _, entry := range entries {
		entry = strings.TrimSpace(entry)
		word, command := entry, entry
		if m := namedCommand.FindStringSubmatch(entry); m != nil {
			word, command = m[1], strings.TrimSpace(m[2])
		}
		if command == "" || strings.ContainsRune(command, 0) {
			return nil, fmt.Errorf("exec-check %q: want COMMAND, or NAME=COMMAND", entry)
		}
		if first, ok := list[word]; ok && first != command {
			return nil, fmt.Errorf("exec-check %q: the name %s has another command already: %q", entry, word, first)
		}
		list[word] = command
	}
	return list, nil
}

// errNotAllowed is why a command of the network's policy does not run.
var errNotAllowed = errors.New("this host's configuration does not allow it")

// Command is what a policy's exec:WORD means on this host.
func (a Allowed) Command(word string) (string, error) {
	if command, ok := a[word]; ok {
		return command, nil
	}
	return "", fmt.Errorf("exec:%.80s: %w: add it to exec-check in the host's hostd.yaml, and restart hostd", word, errNotAllowed)
}
