package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
)

// A Decision is a line of a host's journal (`hostd --journal`).
type Decision struct {
	At     int64
	Host   string
	Flow   netip.Addr
	Server bool
	Event
}

// Journal reads what hosts of one machine decided, in the order of time. A file that is not there yet is empty.
func Journal(files ...string) (all []Decision, err error) {
	for _, name := range files {
		one, err := journal(name)
		if err != nil {
			return nil, fmt.Errorf("journal %s: %w", name, err)
		}
		all = append(all, one...)
	}
	slices.SortFunc(all, func(a, b Decision) int { return cmp.Compare(a.At, b.At) })
	return all, nil
}

func journal(name string) (all []Decision, err error) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for dec := json.NewDecoder(file); ; {
		var d Decision
		switch err := dec.Decode(&d); {
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF): // the last line is being written
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, d)
	}
}
