package frr

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// dumpLen holds the longest answer: the kernel makes them of up to 32 KiB.
const dumpLen = 1 << 16

// dumpTries bounds how often a table is read that changes while it is read.
const dumpTries = 10

var errInterrupted = errors.New("the table changed while it was read")

// dumpAll reads next hop objects, then the routes that may name them, of both families.
func dumpAll(file *os.File) (all []Message, err error) {
	for range dumpTries {
		all = all[:0]
		for _, what := range []struct{ typ, family int }{
			{unix.RTM_GETNEXTHOP, unix.AF_UNSPEC}, {unix.RTM_GETROUTE, unix.AF_INET}, {unix.RTM_GETROUTE, unix.AF_INET6},
		} {
			if all, err = dump(file, all, what.typ, what.family); err != nil {
				break
			}
		}
		if !errors.Is(err, errInterrupted) {
			return all, err
		}
	}
	return all, err
}

// dump asks for all objects of a type and reads the answers to their end, also after an interruption.
func dump(file *os.File, dst []Message, typ, family int) ([]Message, error) {
	if err := ask(file, typ, family); err != nil {
		return dst, err
	}
	buf, interrupted := make([]byte, dumpLen), false
	for {
		n, err := file.Read(buf)
		if err != nil {
			return dst, fmt.Errorf("read table: %w", err)
		}
		done, cutShort, err := ending(buf[:n])
		if err != nil {
			return dst, err
		}
		if dst, err = Parse(dst, buf[:n]); err != nil {
			return dst, err
		}
		if interrupted = interrupted || cutShort; done && interrupted {
			return dst, errInterrupted
		} else if done {
			return dst, nil
		}
	}
}

// ask sends nlmsghdr and the body's first bytes, which both types have: the family, the rest zero.
func ask(file *os.File, typ, family int) error {
	body := rtmsgLen
	if typ == unix.RTM_GETNEXTHOP {
		body = nhmsgLen
	}
	b := make([]byte, headerLen+body)
	native.PutUint32(b, uint32(len(b)))
	native.PutUint16(b[4:], uint16(typ))
	native.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b[headerLen] = byte(family)
	if _, err := file.Write(b); err != nil {
		return fmt.Errorf("ask for table: %w", err)
	}
	return nil
}

// ending looks for the end of a dump, for its error and for the mark that the table changed meanwhile.
func ending(b []byte) (done, interrupted bool, err error) {
	for len(b) > 0 {
		typ, body, size, err := cut(b)
		if err != nil {
			return false, false, err
		}
		interrupted = interrupted || native.Uint16(b[6:])&unix.NLM_F_DUMP_INTR != 0
		if typ == unix.NLMSG_ERROR || typ == unix.NLMSG_DONE {
			done = true
			if len(body) >= 4 && native.Uint32(body) != 0 {
				return true, interrupted, fmt.Errorf("read table: %w", unix.Errno(-int32(native.Uint32(body))))
			}
		}
		b = b[size:]
	}
	return done, interrupted, nil
}

// best leaves one route for each prefix, as forwarding does: the one of the lowest metric.
func best(messages []Message) (kept []Message) {
	at := map[netip.Prefix]int{}
	for _, m := range messages {
		if m.Route == nil {
			kept = append(kept, m)
			continue
		}
		if m.Route.special || m.Route.Table != unix.RT_TABLE_MAIN {
			continue
		}
		i, have := at[m.Route.Prefix]
		switch {
		case !have:
			at[m.Route.Prefix] = len(kept)
			kept = append(kept, m)
		case m.Route.Metric < kept[i].Route.Metric:
			kept[i] = m
		}
	}
	return kept
}
