package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The opcodes of RFC 1350 and RFC 2347.
const (
	opRead   = 1
	opWrite  = 2
	opData   = 3
	opAck    = 4
	opError  = 5
	opOptAck = 6
)

// The error codes of RFC 1350.
const (
	errUndefined = 0
	errNotFound  = 1
	errIllegal   = 4
	errUnknownID = 5
	errOptions   = 8
)

// Block sizes: RFC 1350's, and the bounds of RFC 2348.
const (
	plainBlock = 512
	leastBlock = 8
	mostBlock  = 65464
)

// A request is a read request.
type request struct {
	Name  string
	Block int  // size of a block; 0: not asked for
	Size  bool // whether the client asks for the file's size
}

// A message is what a client sends: a read request, an acknowledgement or an error.
type message struct {
	op      uint16
	request request
	block   uint16
	code    uint16
	text    string
}

// refused is what a client is told of a datagram that is no message.
type refused struct {
	code uint16
	text string
}

func (r *refused) Error() string { return r.text }

func illegal(format string, args ...any) error {
	return &refused{errIllegal, fmt.Sprintf(format, args...)}
}

// errShort: too little to be answered.
var errShort = errors.New("less than an opcode and two bytes")

// parse reads one datagram of a client.
func parse(b []byte) (m message, err error) {
	if len(b) < 4 {
		return m, errShort
	}
	m.op = binary.BigEndian.Uint16(b)
	switch m.op {
	case opRead:
		m.request, err = parseRequest(b[2:])
	case opAck:
		m.block = binary.BigEndian.Uint16(b[2:])
	case opError:
		m.code = binary.BigEndian.Uint16(b[2:])
		text, _, _ := bytes.Cut(b[4:], []byte{0})
		m.text = strings.ToValidUTF8(string(text), "?")
	case opWrite:
		err = illegal("this server only gives files")
	default:
		err = illegal("opcode %d is none of a client's", m.op)
	}
	return m, err
}

// parseRequest reads the strings of a request: name, mode, then options in pairs. Options that it does not
// know are ignored, as RFC 2347 says.
func parseRequest(b []byte) (r request, err error) {
	if b[len(b)-1] != 0 {
		return r, illegal("a string without an end")
	}
	fields := strings.Split(string(b[:len(b)-1]), "\x00")
	if len(fields) < 2 || fields[0] == "" {
		return r, illegal("a request without a name or a mode")
	}
	if mode := strings.ToLower(fields[1]); mode != "octet" {
		return r, illegal("mode %q: this server knows octet (binary)", mode)
	}
	r.Name = fields[0]
	for options := fields[2:]; len(options) >= 2; options = options[2:] {
		switch strings.ToLower(options[0]) {
		case "blksize":
			r.Block, err = blockSize(options[1])
		case "tsize":
			r.Size = true
		}
	}
	return r, err
}

// blockSize may be answered by a smaller one, never by a larger.
func blockSize(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n < leastBlock {
		return 0, &refused{errOptions, fmt.Sprintf("blksize %q: want %d to %d", s, leastBlock, mostBlock)}
	}
	return int(min(n, mostBlock)), nil
}

func appendHeader(b []byte, op, value uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, op), value)
}

func appendError(b []byte, code uint16, text string) []byte {
	return append(append(appendHeader(b, opError, code), text...), 0)
}

// appendOptAck acknowledges the options that were asked for.
func appendOptAck(b []byte, r request, size int64) []byte {
	b = binary.BigEndian.AppendUint16(b, opOptAck)
	if r.Block > 0 {
		b = append(b, fmt.Sprintf("blksize\x00%d\x00", r.Block)...)
	}
	if r.Size {
		b = append(b, fmt.Sprintf("tsize\x00%d\x00", size)...)
	}
	return b
}
