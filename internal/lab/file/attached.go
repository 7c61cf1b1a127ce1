package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxAttached bounds a file that a lab file names; maps packed with gzip or bzip2 are read too.
const maxAttached = 8 << 20

// attached gives the text of a file that the lab file names, and keeps it: a lab that is up is read again by others,
// who may not find the file any more.
func (r *reader) attached(f *File, name string) ([]byte, error) {
	text, ok := r.files[name]
	if !ok {
		var err error
		if text, err = readAttached(f.Path, name); err != nil {
			return nil, err
		}
	}
	if f.Attached == nil {
		f.Attached = map[string][]byte{}
	}
	f.Attached[name] = text
	return text, nil
}

// readAttached reads a file; relative names are relative to the lab file.
func readAttached(lab, name string) ([]byte, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(lab), path)
	}
	if info, err := os.Stat(path); err != nil {
		return nil, fileError(name, err)
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: expected a file, found %s", name, info.Mode().Type())
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, fileError(name, err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxAttached+1))
	switch {
	case err != nil:
		return nil, fileError(name, err)
	case len(text) > maxAttached:
		return nil, fmt.Errorf("%s: more than %d MB; expected a smaller file, or one packed with gzip", name, maxAttached>>20)
	}
	return text, nil
}

// fileError calls the file as the lab file does.
func fileError(name string, err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}
