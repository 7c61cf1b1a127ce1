package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// packaged are the kernels that are tried unless others are named, and the suite of Debian that has them: the oldest
// is below the floor and shows what is missing there.
var packaged = []struct{ series, suite string }{
	{"5.10", "bullseye"},
	{"6.1", "bookworm"},
	{"6.12", "trixie"},
	{"6.18", "trixie-backports"},
	{"7.3", "trixie-backports"},
}

func defaultKernels() (names []string) {
	for _, p := range packaged {
		names = append(names, p.series)
	}
	return names
}

// mirrorEnv names another mirror of Debian.
const mirrorEnv = "SCAFFOLD_DEBIAN_MIRROR"

// A kernel is one that was unpacked.
type kernel struct {
	name    string // as it was asked for
	release string // as uname says
	image   string // the file that boots
	root    string // below it lib/modules/RELEASE is
}

var seriesPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// parseSeries finds the suite that has a series: the one that is listed, or else backports, which has had most.
func parseSeries(name string) (suite string, err error) {
	if !seriesPattern.MatchString(name) {
		return "", fmt.Errorf("kernel %q: want a series like 6.1\nhint: without any, %s are run", name, strings.Join(defaultKernels(), ", "))
	}
	for _, p := range packaged {
		if p.series == name {
			return p.suite, nil
		}
	}
	return "trixie-backports", nil
}

// fetch returns the kernel from the cache; what is not there is downloaded.
func fetch(ctx context.Context, cache, name string, out io.Writer) (kernel, error) {
	suite, err := parseSeries(name)
	if err != nil {
		return kernel{}, err
	}
	dir := filepath.Join(cache, name)
	if k, err := unpacked(dir, name); err == nil {
		return k, nil
	}
	fmt.Fprintf(out, "== %s: fetched from Debian's %s\n", name, suite)
	a := apt{dir: filepath.Join(cache, "apt-"+suite), suite: suite}
	part := dir + ".part"
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o755)); err != nil {
		return kernel{}, err
	}
	defer os.RemoveAll(part)
	if err := a.get(ctx, name, part); err != nil {
		return kernel{}, err
	}
	if _, err := unpacked(part, name); err != nil {
		return kernel{}, err
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(part, dir)); err != nil {
		return kernel{}, err
	}
	return unpacked(dir, name)
}

// unpacked looks what a package that was unpacked to dir has. Newer ones have no link from /lib to /usr/lib.
func unpacked(dir, name string) (kernel, error) {
	images, _ := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*")) // the pattern is well-formed
	if len(images) != 1 {
		return kernel{}, fmt.Errorf("%s has %d images of kernels, want one", dir, len(images))
	}
	k := kernel{name: name, image: images[0], release: strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")}
	for _, root := range []string{dir, filepath.Join(dir, "usr")} {
		if _, err := os.Stat(filepath.Join(root, "lib", "modules", k.release, "kernel")); err == nil {
			k.root = root
			return k, nil
		}
	}
	return kernel{}, fmt.Errorf("%s has no modules of %s", dir, k.release)
}

// apt has lists and packages of one suite in a directory of its own: the machine's are not touched.
type apt struct{ dir, suite string }

func (a apt) get(ctx context.Context, series, to string) error {
	if err := a.prepare(); err != nil {
		return err
	}
	if _, err := a.do(ctx, a.dir, "apt-get", "update"); err != nil {
		return err
	}
	found, err := a.do(ctx, a.dir, "apt-cache", "pkgnames", "linux-image-"+series+".")
	if err != nil {
		return err
	}
	image := newest(strings.Fields(found))
	if image == "" {
		return fmt.Errorf("the suite %s of Debian has no linux-image-%s.*-%s\nhint: apt-cache search linux-image on a machine of that suite says which it has", a.suite, series, arch)
	}
	files, err := a.download(ctx, image)
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := a.do(ctx, a.dir, "dpkg-deb", "-x", f, to); err != nil {
			return err
		}
	}
	return errors.Join(trim(to), os.RemoveAll(filepath.Join(a.dir, "new")))
}

// download gets the package, and those that have the parts of one that is split, and returns the files.
func (a apt) download(ctx context.Context, image string) ([]string, error) {
	names := []string{image}
	version := strings.TrimPrefix(image, "linux-image-")
	for _, part := range []string{"linux-binary-" + version, "linux-modules-" + version} {
		if found, err := a.do(ctx, a.dir, "apt-cache", "pkgnames", part); err == nil && slices.Contains(strings.Fields(found), part) {
			names = append(names, part)
		}
	}
	dir := filepath.Join(a.dir, "new")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return nil, err
	}
	if _, err := a.do(ctx, dir, "apt-get", append([]string{"download"}, names...)...); err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(dir, "*.deb"))
}

func (a apt) prepare() error {
	const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	if _, err := os.Stat(keyring); err != nil {
		return fmt.Errorf("%w\nhint: apt-get install debian-archive-keyring", err)
	}
	mirror := os.Getenv(mirrorEnv)
	if mirror == "" {
		mirror = "http://deb.debian.org/debian"
	}
	for _, dir := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, dir), 0o755); err != nil {
			return err
		}
	}
	sources := fmt.Sprintf("deb [signed-by=%s arch=%s] %s %s main\n", keyring, arch, mirror, a.suite)
	config := fmt.Sprintf("Dir::Etc::sourcelist %q;\nDir::Etc::sourceparts \"-\";\nDir::State::lists %q;\nDir::Cache %q;\nAPT::Sandbox::User \"root\";\n",
		filepath.Join(a.dir, "sources.list"), filepath.Join(a.dir, "lists"), filepath.Join(a.dir, "cache"))
	return errors.Join(os.WriteFile(filepath.Join(a.dir, "sources.list"), []byte(sources), 0o644),
		os.WriteFile(filepath.Join(a.dir, "apt.conf"), []byte(config), 0o644))
}

func (a apt) do(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "APT_CONFIG="+filepath.Join(a.dir, "apt.conf"), "LC_ALL=C")
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, exit.Stderr)
	case err != nil:
		return "", fmt.Errorf("%w\nhint: kernels come by apt; on a machine without it, put boot/vmlinuz-RELEASE and lib/modules/RELEASE below the cache's SERIES", err)
	}
	return string(out), nil
}

var numbers = regexp.MustCompile(`[0-9]+`)

// newest is the package of the latest version among names, without real-time and cloud variants; empty if there is none.
func newest(names []string) (best string) {
	version := func(name string) (v []int) {
		for _, n := range numbers.FindAllString(strings.TrimSuffix(name, arch), -1) {
			i, _ := strconv.Atoi(n) // digits
			v = append(v, i)
		}
		return v
	}
	for _, n := range names {
		plain := strings.HasSuffix(n, "-"+arch) && !strings.Contains(n, "-rt-") && !strings.Contains(n, "-cloud-")
		if plain && (best == "" || slices.Compare(version(n), version(best)) > 0) {
			best = n
		}
	}
	return best
}

// trim takes away what is not needed: documents, and the map of symbols.
func trim(dir string) error {
	maps, _ := filepath.Glob(filepath.Join(dir, "boot", "System.map-*")) // the pattern is well-formed
	for _, m := range maps {
		os.Remove(m)
	}
	return os.RemoveAll(filepath.Join(dir, "usr", "share"))
}
