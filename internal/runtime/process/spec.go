package process

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

const (
	// DefaultMemory is what a program may use, in bytes, when its spec says nothing.
	DefaultMemory = 2 << 30
	// DefaultProcesses is how many processes and threads a program may have when its
	// spec says nothing.
	DefaultProcesses = 1024
)

// Spec says what runs under a name.
type Spec struct {
	// Name identifies the program. It is a DNS subdomain, as the name of a package
	// revision is, and the host name that the program sees.
	Name string
	// Origin and Digest are the image.
	Origin content.Origin
	Digest oci.Digest
	// Command takes the place of the image's entrypoint, and Args that of its cmd,
	// as the fields of a container of the same names do. Nothing is expanded.
	Command, Args []string
	// MoreArgs follow the arguments, also those that the image has.
	MoreArgs []string
	// Env is added to the environment of the image. Nothing of the environment of
	// this process is passed on.
	Env map[string]string
	// Files appear in the root of the program: absolute path to content. They are
	// read-only. When only their content changes all of them are replaced in one
	// step while the program runs; other paths are a restart.
	Files map[string][]byte
	// Memory bounds what all processes of the program use together, in bytes, and
	// Processes how many of them there are, with their threads. Zero is the default.
	Memory    int64
	Processes int
}

var (
	validName     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	validVariable = regexp.MustCompile(`^[^=\x00]+$`)
)

// maxName is the longest name of a Kubernetes object, in bytes.
const maxName = 253

// check refuses what cannot be run by anybody.
func (s Spec) check() error {
	if len(s.Name) > maxName || !validName.MatchString(s.Name) {
		return ErrProgramSpec.New(nil, "a program cannot have the name %q", s.Name)
	}
	refuse := func(format string, args ...any) error {
		return ErrProgramSpec.New(fmt.Errorf(format, args...), "cannot run the program %s", s.Name)
	}
	if s.Digest.IsZero() {
		return refuse("its image has no digest")
	}
	for name, value := range s.Env {
		if !validVariable.MatchString(name) || strings.ContainsRune(value, 0) {
			return refuse("its environment has a variable %q", name)
		}
	}
	for _, arg := range slices.Concat(s.Command, s.Args, s.MoreArgs) {
		if strings.ContainsRune(arg, 0) {
			return refuse("an argument has a zero byte")
		}
	}
	if s.Memory < 0 || s.Processes < 0 {
		return refuse("a limit is negative")
	}
	return s.checkFiles(refuse)
}

func (s Spec) checkFiles(refuse func(string, ...any) error) error {
	for name := range s.Files {
		if !path.IsAbs(name) || path.Clean(name) != name || name == "/" || strings.ContainsRune(name, 0) || strings.HasPrefix(name+"/", filesMount+"/") {
			return refuse("it cannot have a file %q", name)
		}
		for above := path.Dir(name); above != "/"; above = path.Dir(above) {
			if _, both := s.Files[above]; both {
				return refuse("%q is a file and a folder", above)
			}
		}
	}
	return nil
}

// same reports that a program need not be restarted to become the other.
func (s Spec) same(o Spec) bool {
	return s.Digest == o.Digest && slices.Equal(s.Command, o.Command) && slices.Equal(s.Args, o.Args) && slices.Equal(s.MoreArgs, o.MoreArgs) &&
		maps.Equal(s.Env, o.Env) && s.memory() == o.memory() && s.processes() == o.processes() &&
		slices.Equal(s.paths(), o.paths())
}

func (s Spec) memory() int64  { return cmp.Or(s.Memory, DefaultMemory) }
func (s Spec) processes() int { return cmp.Or(s.Processes, DefaultProcesses) }

// paths are those of the files, sorted.
func (s Spec) paths() []string { return slices.Sorted(maps.Keys(s.Files)) }

// clone is independent of what the caller does with his maps.
func (s Spec) clone() Spec {
	s.Command, s.Args, s.MoreArgs = slices.Clone(s.Command), slices.Clone(s.Args), slices.Clone(s.MoreArgs)
	s.Env, s.Files = maps.Clone(s.Env), maps.Clone(s.Files)
	return s
}
