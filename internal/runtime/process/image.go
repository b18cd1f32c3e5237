package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Images gives the unpacked roots of images.
type Images interface {
	// Image gives the root of the image with a digest, and gets it first where it is
	// not here yet.
	Image(ctx context.Context, origin content.Origin, digest oci.Digest) (Root, error)
}

// Root is the unpacked root of an image. Nobody writes to it.
type Root struct {
	// Path is the folder.
	Path string
	// Config says how the program of the image is started.
	Config oci.ProgramConfig
	// Release tells that the root is not needed any more; it may be nil.
	Release func()
}

func (r Root) release() {
	if r.Release != nil {
		r.Release()
	}
}

// defaultPath is the search path of an image that sets none, as container engines
// have it.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// command is what is executed, as the program sees it.
type command struct {
	// path is the absolute path of the program in its root.
	path string
	args []string
	env  []string
	dir  string
}

// Check reports whether an image has the program that a spec starts. It fails with
// NoProgram.
func Check(root Root, spec Spec) error {
	_, err := newCommand(root, spec)
	return err
}

// newCommand joins the image with what the spec says about it. It fails with
// NoProgram.
func newCommand(root Root, spec Spec) (command, error) {
	args := append(append([]string{}, spec.Command...), spec.Args...)
	if len(spec.Command) == 0 {
		tail := spec.Args
		if len(tail) == 0 {
			tail = root.Config.Cmd
		}
		args = append(append([]string{}, root.Config.Entrypoint...), tail...)
	}
	if len(args) == 0 {
		return command{}, ErrNoProgram.New(nil, "the image %s of %s has neither an entrypoint nor a command", spec.Digest.Short(), spec.Name)
	}
	args = append(args, spec.MoreArgs...)
	c := command{args: args, env: environment(root, spec), dir: path.Join("/", root.Config.WorkingDir)}
	files, err := os.OpenRoot(root.Path)
	if err != nil {
		return command{}, ErrProgramStart.New(err, "cannot open the image of %s", spec.Name)
	}
	defer files.Close() //nolint:errcheck // Nothing is written through it.
	if c.path, err = lookUp(files, args[0], c.dir, valueOf(c.env, "PATH")); err != nil {
		return command{}, ErrNoProgram.New(err, "cannot find the program %q of %s in the image %s", args[0], spec.Name, spec.Digest.Short())
	}
	return c, nil
}

// environment is that of the image, with what the spec adds. A program has the host
// name that its name is.
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

// lookUp finds a program as a shell does: by its path, or else in the folders of the
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
