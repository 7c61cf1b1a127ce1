// Package descriptors finds the processes that hold sockets.
package descriptors

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Each visits the descriptors of all processes that are sockets until f has enough: whose a socket is stands
// nowhere else.
func Each(f func(link, target string) (goOn bool)) {
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range pids {
		files, err := os.ReadDir(dir + "/fd")
		if err != nil {
			continue // gone, or not ours to see
		}
		for _, file := range files {
			link := dir + "/fd/" + file.Name()
			target, _ := os.Readlink(link)
			if strings.HasPrefix(target, "socket:[") && !f(link, target) {
				return
			}
		}
	}
}

// Process is the directory of the process that has a descriptor.
func Process(link string) string { return filepath.Dir(filepath.Dir(link)) }

// Socket reads the socket's inode in what its descriptor leads to.
func Socket(target string) (inode uint32, ok bool) {
	n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]"), 10, 32)
	return uint32(n), err == nil
}
