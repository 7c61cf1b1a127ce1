// Package support gathers what somebody who is asked for help wants to see of a machine: versions, what the daemons
// say of themselves and of the network, and what of the kernel bears on it, in one archive without secrets.
package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of one source: a daemon that hangs must not take the archive with it, a log that grew for years must fit.
const (
	sourceTime = 10 * time.Second
	sourceMost = 4 << 20 // bytes; of more the end is kept
	atOnce     = 8
)

// A Source is one file of the archive.
type Source struct {
	Name string // of the file
	Read func(context.Context) ([]byte, error)
}

// An Entry of the manifest says what became of a source.
type Entry struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	Cut   bool   `json:"cut,omitempty"`   // its beginning was left out
	Error string `json:"error,omitempty"` // why it is missing, or ends early
}

// A Manifest is the archive's first file.
type Manifest struct {
	Made    time.Time `json:"made"`
	Version string    `json:"version"`
	Entries []Entry   `json:"entries"`
}

// Missing are the entries that could not be read.
func (m *Manifest) Missing() (list []Entry) {
	for _, e := range m.Entries {
		if e.Error != "" {
			list = append(list, e)
		}
	}
	return list
}

// Dump reads all sources and writes the archive, a gzipped tar file below the directory top. A source that cannot be
// read is named in the manifest and is no error.
func Dump(ctx context.Context, w io.Writer, top, version string, sources []Source) (*Manifest, error) {
	slices.SortFunc(sources, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	m := &Manifest{Made: time.Now().UTC(), Version: version, Entries: make([]Entry, len(sources))}
	texts := make([][]byte, len(sources))
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, s := range sources {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			texts[i], m.Entries[i] = s.read(ctx)
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	err = add(archive, m.Made, top+"/MANIFEST.json", append(manifest, '\n'))
	for i, s := range sources {
		if err == nil && len(texts[i]) > 0 {
			err = add(archive, m.Made, top+"/"+s.Name, texts[i])
		}
	}
	for _, close := range []func() error{archive.Close, zipped.Close} {
		if e := close(); err == nil { // after the first one they all say the same
			err = e
		}
	}
	if err != nil {
		return nil, fmt.Errorf("write the archive: %w", err)
	}
	return m, nil
}

func add(archive *tar.Writer, at time.Time, name string, text []byte) error {
	// Package tar rounds times: half of them into the future, of which tar complains.
	h := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: at.Truncate(time.Second)}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	_, err := archive.Write(text)
	return err
}

// read is the source's text, without secrets and not too long.
func (s Source) read(ctx context.Context) ([]byte, Entry) {
	ctx, cancel := context.WithTimeout(ctx, sourceTime)
	defer cancel()
	text, err := s.Read(ctx)
	e := Entry{Name: s.Name}
	if err != nil {
		e.Error = string(redact([]byte(err.Error())))
	}
	text = redact(text)
	if len(text) > sourceMost {
		text, e.Cut = text[len(text)-sourceMost:], true
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
	}
	e.Bytes = len(text)
	return text, e
}
