package cgroups

import (
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Quota is how many processors the cgroups of this process let it have, by version 1 or 2, whichever has the controller
// "cpu"; infinite where none says a number, or it cannot be read.
func Quota() float64 {
	groups, _ := os.ReadFile("/proc/self/cgroup")
	mounts, _ := os.ReadFile(MountInfo)
	return quota(string(groups), string(mounts), func(path string) string {
		text, _ := os.ReadFile(path)
		return string(text)
	})
}

// quota is the smallest of a group and of those above it, as far as they can be seen; read gives a file, "" where there is
// none.
func quota(groups, mounts string, read func(path string) string) float64 {
	least := math.Inf(1)
	for line := range strings.Lines(groups) { // "1:cpu,cpuacct:/path", and of version 2 "0::/path"
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 || parts[1] != "" && !slices.Contains(strings.Split(parts[1], ","), "cpu") {
			continue
		}
		at, top := mountOf(mounts, parts[1] == "", parts[2])
		for at != "" {
			least = min(least, quotaOf(at, read))
			if at == top {
				break
			}
			at = path.Dir(at)
		}
	}
	return least
}

// mountOf is where a group's directory is, and that of the highest group that is seen; "": nowhere.
func mountOf(mounts string, second bool, group string) (at, top string) {
	for line := range strings.Lines(mounts) {
		left, right, _ := strings.Cut(line, " - ")
		words, kind := strings.Fields(left), strings.Fields(right)
		if len(words) < 5 || len(kind) < 3 {
			continue
		}
		is := kind[0] == "cgroup2"
		if !second {
			is = kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "cpu")
		}
		root := path.Clean(words[3])
		if rest, below := strings.CutPrefix(path.Clean(group), root); is && below && (rest == "" || root == "/" || rest[0] == '/') {
			return path.Join(words[4], rest), path.Clean(words[4])
		}
	}
	return "", ""
}

// quotaOf is what one directory says.
func quotaOf(dir string, read func(path string) string) float64 {
	most, period, _ := strings.Cut(strings.TrimSpace(read(dir+"/cpu.max")), " ")
	if most == "" {
		most, period = strings.TrimSpace(read(dir+"/cpu.cfs_quota_us")), strings.TrimSpace(read(dir+"/cpu.cfs_period_us"))
	}
	m, err := strconv.ParseFloat(most, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err != nil || err2 != nil || m <= 0 || p <= 0 { // "max", -1, or no such file
		return math.Inf(1)
	}
	return m / p
}
