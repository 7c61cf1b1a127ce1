package emu

import "time"

// Watch has see called, on the network's thread, with every packet that arrives over the link: over which direction,
// when, and its Ethernet frame, which is valid until see returns. Of a train each packet is shown for itself, as it
// would be on a wire; its checksum may be partial. It goes on until stop is called.
func (l *Link) Watch(see func(from int, at time.Duration, frame []byte)) (stop func() error, err error) {
	var watchers [2]*watcher
	for i, w := range l.ways {
		watchers[i] = &watcher{see: func(at time.Duration, frame []byte) { see(i, at, frame) }}
		if err := w.far.ask(func() { w.watch = append(w.watch, watchers[i]) }); err != nil {
			return nil, err
		}
	}
	return func() error {
		for i, w := range l.ways {
			if err := w.far.ask(func() { w.unwatch(watchers[i]) }); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

type watcher struct {
	see  func(time.Duration, []byte)
	head [maxHead]byte
	text []byte
}

func (w *way) unwatch(gone *watcher) {
	var left []*watcher
	for _, one := range w.watch {
		if one != gone {
			left = append(left, one)
		}
	}
	w.watch = left
}

// show hands out a packet, or those of a train one by one.
func (w *watcher) show(s *shard, p Packet) {
	s.arena.write(&p)
	b := s.arena.bytes(p.slot)
	if p.flags&flagTrain == 0 {
		w.see(s.now, b[atEther:])
		return
	}
	f := s.arena.frames[p.slot]
	for i := range p.count {
		one := p
		one.first, one.count = p.first+i, 1
		header, payload := cut(w.head[:], b, f, one)
		w.text = append(append(w.text[:0], header[atEther:]...), payload...)
		w.see(s.now, w.text)
	}
}
