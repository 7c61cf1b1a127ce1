package memory

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A Mapping is memory behind a file without a name.
type Mapping struct {
	file *os.File
	all  []byte
}

// Map makes a mapping of so many bytes, all zero.
func Map(bytes int) (*Mapping, error) {
	fd, err := unix.MemfdCreate("scaffold-boost", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for boosted sessions: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memory of boosted sessions")
	if err := f.Truncate(int64(bytes)); err != nil {
		f.Close()
		return nil, fmt.Errorf("memory for boosted sessions, %d bytes: %w", bytes, err)
	}
	all, err := unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("memory for boosted sessions, %d bytes: %w", bytes, err)
	}
	return &Mapping{file: f, all: all}, nil
}

// Bytes is all of it.
func (m *Mapping) Bytes() []byte { return m.all }

// Close gives it back. Nobody uses Bytes any more.
func (m *Mapping) Close() error {
	if err := unix.Munmap(m.all); err != nil {
		return fmt.Errorf("give memory of boosted sessions back: %w", err)
	}
	return m.file.Close()
}
