package api

import "errors"

// ErrHandOver is the cause of a context that ends because another daemon takes this one's place: what
// is in the kernel stays for it, as with --keep.
var ErrHandOver = errors.New("another daemon goes on from here")
