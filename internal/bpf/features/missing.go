package features

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Pretend is the variable that makes probes find less than the kernel has: parts of features' names,
// joined by commas. It shows what a lesser kernel would get, and tests use it.
const Pretend = "SCAFFOLD_PRETEND_WITHOUT"

var errPretended = errors.New("pretended by $" + Pretend)

// pretended is an error for a feature that is to be missing.
func pretended(name string) error {
	for part := range strings.SplitSeq(os.Getenv(Pretend), ",") {
		if part = strings.TrimSpace(part); part != "" && strings.Contains(name, part) {
			return errPretended
		}
	}
	return nil
}

// A MissingError names what a part needs of the kernel and does not get.
type MissingError struct {
	Part     string // of Scaffold: a host, a service router
	Features []Feature
}

func (e *MissingError) Error() string {
	var names []string
	denied := true
	for _, f := range e.Features {
		names = append(names, fmt.Sprintf("%s (Linux %s; without it: %s)", f.Name, f.Since, f.Cost))
		denied = denied && errors.Is(f.Err, fs.ErrPermission)
	}
	if denied {
		return fmt.Sprintf("this process may not use what %s needs of the kernel: run it as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN", e.Part)
	}
	return fmt.Sprintf("this kernel lacks what %s needs: %s", e.Part, strings.Join(names, "; "))
}

// Missing is nil, or an error that names the features that the part needs and that are not there.
func Missing(part string, all []Feature, needs func(Feature) bool) error {
	e := &MissingError{Part: part}
	for _, f := range all {
		if needs(f) && f.Err != nil {
			e.Features = append(e.Features, f)
		}
	}
	if e.Features == nil {
		return nil
	}
	return e
}
