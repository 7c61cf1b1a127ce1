package kick

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
)

// mostLooks is MAX_LOOKS of record.h.
const mostLooks = 256

// eachMany calls f with the wanted sockets, two microseconds each, and returns the connections that it did not
// find: they have ended, or are bound to a device. What it shows serves to kick them: see many_sockets.
func (k *Kicker) eachMany(want Set, f func(*Socket) error) (rest Set, err error) {
	list := make([]Tuple, 0, len(want))
	for t := range want {
		list = append(list, t)
	}
	rest = Set{}
	for start := 0; start < len(list); start += mostLooks {
		part := list[start:min(start+mostLooks, len(list))]
		records, err := k.lookAt(part)
		if err != nil {
			return nil, err
		}
		for i := range records {
			if records[i].State == 0 {
				rest[part[i]] = struct{}{}
				continue
			}
			s := records[i].socket(part[i], jiffyOf(time.Duration(records[i].Now), records[i].Jiffies))
			if err := f(&s); err != nil {
				return nil, err
			}
		}
	}
	return rest, nil
}

// lookAt reads the connections, at most mostLooks; the state of one that is not found is 0.
func (k *Kicker) lookAt(part []Tuple) ([]dumpRecord, error) {
	k.one.Lock()
	defer k.one.Unlock()
	if k.objects.ManySockets == nil {
		return nil, errClosed
	}
	places, records := make([]uint32, len(part)), make([]dumpRecord, len(part))
	for i, t := range part {
		places[i] = uint32(i)
		records[i] = dumpRecord{Local: t.Local.Addr().As16(), Peer: t.Peer.Addr().As16(), LocalPort: t.Local.Port(), PeerPort: t.Peer.Port()}
	}
	if _, err := k.objects.Looks.BatchUpdate(places, records, nil); err != nil {
		return nil, fmt.Errorf("kick: name %d connections: %w", len(part), err)
	}
	run := ebpf.RunOptions{Data: make([]byte, oneLen), Context: runContext{Mark: uint32(len(part))}, Repeat: 1}
	err := k.inside(func() error { _, err := k.objects.ManySockets.Run(&run); return err })
	if err != nil {
		return nil, fmt.Errorf("kick: look at %d connections: %w", len(part), err)
	}
	var cursor ebpf.MapBatchCursor
	if _, err := k.objects.Looks.BatchLookup(&cursor, places, records, nil); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, fmt.Errorf("kick: read %d connections: %w", len(part), err)
	}
	return records, nil
}
