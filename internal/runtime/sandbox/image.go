package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
)

// Images provides the unpacked roots of images.
type Images interface {
	// Image returns the root of the image with a digest. It fetches the image if
	// necessary.
	Image(ctx context.Context, origin fetch.Origin, digest oci.Digest) (Root, error)
}

// Root is the unpacked, read-only root of an image.
type Root struct {
	// Path is the folder.
	Path string
	// Config is the image configuration: entrypoint, arguments, environment and so on.
	Config unpack.RuntimeConfig
	// Release releases the root when it is no longer used. It may be nil.
	Release func()
}

func (r Root) release() {
	if r.Release != nil {
		r.Release()
	}
}

// defaultPath is the search path of an image that sets none, as in container engines.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// command is the command of a runtime, with paths inside the root.
type command struct {
	// path is the absolute path of the executable in the root.
	path string
	args []string
	env  []string
	dir  string
}

// Check fails with NoProgram if an image does not contain the executable that a spec starts.
func Check(root Root, spec Spec) error {
	_, err := newCommand(root, spec)
	return err
}

// newCommand merges the image configuration with the spec. It fails with NoProgram if the image
// does not contain the executable.
func newCommand(root Root, spec Spec) (command, error) {
	args, err := runtime.CommandLine(spec.Name, spec.Digest, root.Config, spec.Command, spec.Args)
	if err != nil {
		return command{}, err
	}
	args = append(args, spec.MoreArgs...)
	c := command{args: args, env: environment(root, spec), dir: path.Join("/", root.Config.WorkingDir)}
	files, err := os.OpenRoot(root.Path)
	if err != nil {
		return command{}, ErrProgramStart.New(err, "cannot open the image of %s", spec.Name)
	}
	defer files.Close()
	if c.path, err = lookUp(files, args[0], c.dir, valueOf(c.env, "PATH")); err != nil {
		return command{}, runtime.ErrNoProgram.New(
			err, "cannot find the program %q of %s in the image %s", args[0], spec.Name, spec.Digest.Short(),
		)
	}
	return c, nil
}

// environment returns the environment of the image with the variables of the spec, which take
// precedence. HOSTNAME is the name of the runtime.
func environment(root Root, spec Spec) []string {
	env := append([]string{"PATH=" + defaultPath, "HOME=/", "HOSTNAME=" + spec.Name}, root.Config.Env...)
	for name, value := range spec.Env {
		env = append(env, name+"="+value)
	}
	return lastOfEach(env)
}

// lastOfEach keeps the last value of each variable, in the order of the names.
func lastOfEach(env []string) []string {
	values := map[string]string{}
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			values[name] = value
		}
	}
	out := make([]string, 0, len(values))
	for _, name := range sortedKeys(values) {
		out = append(out, name+"="+values[name])
	}
	return out
}

func valueOf(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// lookUp finds an executable as a shell does: by its path, or in the folders of the
// search path.
func lookUp(root *os.Root, program, dir, search string) (string, error) {
	if strings.Contains(program, "/") {
		full := program
		if !path.IsAbs(full) {
			full = path.Join(dir, full)
		}
		return full, executable(root, full)
	}
	var last error = fs.ErrNotExist
	for _, folder := range strings.Split(search, ":") {
		if !path.IsAbs(folder) {
			continue
		}
		full := path.Join(folder, program)
		err := executable(root, full)
		if err == nil {
			return full, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			last = err
		}
	}
	return "", last
}

func executable(root *os.Root, full string) error {
	info, err := root.Stat(strings.TrimPrefix(path.Clean(full), "/"))
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return &fs.PathError{Op: "execute", Path: full, Err: errors.New("not an executable file")}
	}
	return nil
}
