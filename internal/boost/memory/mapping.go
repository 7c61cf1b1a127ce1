package memory

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A Mapping is memory behind a file without a name. The file is a little longer: behind the memory it has a note for each
// block of it.
type Mapping struct {
	file   *os.File
	mapped []byte
	all    []byte
	notes  []note
}

// Map makes a mapping of so many bytes, a multiple of stripe.Block, all zero.
func Map(bytes int) (*Mapping, error) {
	fd, err := unix.MemfdCreate("scaffold-boost", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for boosted sessions: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memory of boosted sessions")
	if err := f.Truncate(int64(bytes + notesOf(bytes))); err != nil {
		f.Close()
		return nil, fmt.Errorf("memory for boosted sessions, %d bytes: %w", bytes, err)
	}
	return Of(f, bytes)
}

// Of maps so many bytes of a file that Map has made, in another process perhaps. The file is the mapping's from now on.
func Of(f *os.File, bytes int) (*Mapping, error) {
	length := bytes + notesOf(bytes)
	info, err := f.Stat()
	if err == nil && info.Size() != int64(length) { // to touch what is beyond the end of a file is a fault of the process
		err = fmt.Errorf("its file has %d bytes, expected %d", info.Size(), length)
	}
	var mapped []byte
	if err == nil {
		mapped, err = unix.Mmap(int(f.Fd()), 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("memory for boosted sessions, %d bytes: %w", bytes, err)
	}
	return &Mapping{file: f, mapped: mapped, all: mapped[:bytes:bytes], notes: notesIn(mapped[bytes:])}, nil
}

// Bytes is all of it.
func (m *Mapping) Bytes() []byte { return m.all }

// File is what another process needs to map it as well.
func (m *Mapping) File() *os.File { return m.file }

// Close gives it back. Nobody uses Bytes any more.
func (m *Mapping) Close() error {
	if err := unix.Munmap(m.mapped); err != nil {
		return fmt.Errorf("give memory of boosted sessions back: %w", err)
	}
	return m.file.Close()
}
