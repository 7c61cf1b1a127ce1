package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// needed are the modules without which the machine's files cannot be reached. The rest is loaded by the kernel.
var needed = []string{"virtio_pci", "9pnet_virtio", "9p", "overlay"}

// order is the file in the initramfs that lists the modules' files in the order of loading.
const order = "modules.order"

// initramfs is the archive that the kernel unpacks and starts: this program and the modules that it needs first.
func initramfs(ctx context.Context, k kernel) ([]byte, error) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	files, err := modules(ctx, k)
	if err != nil {
		return nil, err
	}
	var a archive
	a.add("init", 0o100755, self)
	a.add("dev", 0o040755, nil)
	a.node("dev/console", 5, 1)
	var list []string
	for _, f := range files {
		text, err := plain(ctx, f)
		if err != nil {
			return nil, err
		}
		list = append(list, strings.TrimSuffix(filepath.Base(f), ".xz"))
		a.add(list[len(list)-1], 0o100644, text)
	}
	a.add(order, 0o100644, []byte(strings.Join(list, "\n")))
	a.add("TRAILER!!!", 0, nil)
	return a.Bytes(), nil
}

// modules asks modprobe in which order the files of the needed modules are to be loaded.
func modules(ctx context.Context, k kernel) (files []string, err error) {
	if _, err := os.Stat(filepath.Join(k.root, "lib", "modules", k.release, "modules.dep")); err != nil {
		if out, err := exec.CommandContext(ctx, "depmod", "-b", k.root, k.release).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("depmod: %w: %s\nhint: apt-get install kmod", err, out)
		}
	}
	have := map[string]bool{}
	for _, name := range needed {
		out, err := exec.CommandContext(ctx, "modprobe", "-d", k.root, "-S", k.release, "--show-depends", name).Output()
		if err != nil {
			return nil, fmt.Errorf("modprobe: module %s of %s: %w", name, k.release, err)
		}
		for line := range strings.Lines(string(out)) {
			f, ok := strings.CutPrefix(strings.TrimSpace(line), "insmod ") // else it is built in
			if f = strings.TrimSpace(f); ok && !have[f] {
				have[f], files = true, append(files, f)
			}
		}
	}
	return files, nil
}

// plain reads a file, decompressed.
func plain(ctx context.Context, file string) ([]byte, error) {
	if path.Ext(file) != ".xz" {
		return os.ReadFile(file)
	}
	text, err := exec.CommandContext(ctx, "xz", "-dc", file).Output()
	if errors.Is(err, exec.ErrNotFound) {
		err = fmt.Errorf("%w\nhint: apt-get install xz-utils", err)
	}
	return text, err
}

// An archive is a cpio archive in the format "newc", which is all that the kernel unpacks.
type archive struct {
	bytes.Buffer
	files int
}

func (a *archive) add(name string, mode int, data []byte) { a.entry(name, mode, 0, 0, data) }

func (a *archive) node(name string, major, minor int) { a.entry(name, 0o020600, major, minor, nil) }

// entry appends a header of 13 numbers in hexadecimal, the name and the data, each padded to four bytes.
func (a *archive) entry(name string, mode, major, minor int, data []byte) {
	a.files++
	io.WriteString(a, "070701")
	for _, n := range []int{a.files, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name) + 1, 0} {
		fmt.Fprintf(a, "%08X", n)
	}
	io.WriteString(a, name+"\x00")
	a.pad()
	a.Write(data)
	a.pad()
}

func (a *archive) pad() { a.Write(make([]byte, -a.Len()&3)) }
