package sandbox

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const (
	// defaultMemory is the default memory limit of a runtime, in bytes.
	defaultMemory = 2 << 30
	// defaultProcesses is the default limit of processes and threads of a runtime.
	defaultProcesses = 1024
)

// Spec describes the process of a runtime.
type Spec struct {
	// Name identifies the runtime. It is a DNS subdomain, like the name of a package
	// revision, and the host name inside the sandbox.
	Name string
	// Origin and Digest identify the image.
	Origin fetch.Origin
	Digest oci.Digest
	// Command replaces the entrypoint of the image, and Args its cmd, like the container
	// fields of the same names. References are not expanded.
	Command, Args []string
	// MoreArgs are appended to the arguments, including the arguments of the image.
	MoreArgs []string
	// Env is added to the environment of the image. The environment of this process is not passed
	// on.
	Env map[string]string
	// Files maps absolute paths in the root to content. The files are read-only. If only
	// content changes, all files are replaced atomically while the runtime runs. A change
	// of the paths restarts it.
	Files map[string][]byte
	// Ports maps TCP ports to those on which the runtime listens in their place. Programs with
	// the same ports can run at once. It has no effect without namespaces, or before Linux 5.6.
	Ports map[int]int
	// Memory limits the memory of all processes of the runtime together, in bytes, and
	// Processes the number of processes and threads. Zero means the default.
	Memory    int64
	Processes int
	// Restart identifies an event after which the runtime must start again. A change restarts it.
	Restart string
}

var (
	validName     = lazyregexp.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	validVariable = lazyregexp.New(`^[^=\x00]+$`)
)

// maxName is the longest name of a Kubernetes object, in bytes.
const maxName = 253

// check fails with ProgramSpec if the spec is invalid.
func (s Spec) check() error {
	if len(s.Name) > maxName || !validName().MatchString(s.Name) {
		return ErrProgramSpec.New(nil, "a program cannot have the name %q", s.Name)
	}
	refuse := func(format string, args ...any) error {
		return ErrProgramSpec.New(fmt.Errorf(format, args...), "cannot run the program %s", s.Name)
	}
	if s.Digest.IsZero() {
		return refuse("its image has no digest")
	}
	for name, value := range s.Env {
		if !validVariable().MatchString(name) || strings.ContainsRune(value, 0) {
			return refuse("its environment has the invalid variable %q", name)
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
		if !path.IsAbs(name) || path.Clean(name) != name || name == "/" || strings.ContainsRune(name, 0) ||
			strings.HasPrefix(name+"/", filesMount+"/") {
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

// same reports whether a change to the other spec needs no restart.
func (s Spec) same(o Spec) bool {
	return s.Digest == o.Digest && s.Restart == o.Restart &&
		slices.Equal(s.Command, o.Command) && slices.Equal(s.Args, o.Args) &&
		slices.Equal(s.MoreArgs, o.MoreArgs) &&
		maps.Equal(s.Env, o.Env) && s.memory() == o.memory() && s.processes() == o.processes() &&
		slices.Equal(s.paths(), o.paths()) && maps.Equal(s.Ports, o.Ports)
}

func (s Spec) memory() int64  { return cmp.Or(s.Memory, defaultMemory) }
func (s Spec) processes() int { return cmp.Or(s.Processes, defaultProcesses) }

// paths returns the sorted paths of the files.
func (s Spec) paths() []string { return slices.Sorted(maps.Keys(s.Files)) }

// clone returns a deep copy.
func (s Spec) clone() Spec {
	s.Command, s.Args, s.MoreArgs = slices.Clone(s.Command), slices.Clone(s.Args), slices.Clone(s.MoreArgs)
	s.Env, s.Files, s.Ports = maps.Clone(s.Env), maps.Clone(s.Files), maps.Clone(s.Ports)
	return s
}
