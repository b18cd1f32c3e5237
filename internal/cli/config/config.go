// Package config reads the configuration file of the user, and the XPKG_* variables. Both contain values of flags that
// a user would otherwise repeat with every command.
package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrInvalid is the code for an invalid configuration file.
var ErrInvalid = errcode.Code{
	Name: "ConfigInvalid", Class: errcode.Usage,
	Cause: "The configuration file of xpkg cannot be read, or contains an unknown key or an invalid value.",
	Fix:   "Correct the file, whose keys are the names of flags. `xpkg config view` lists the keys.",
}

// Codes returns the error codes that this package defines.
func Codes() []errcode.Code { return []errcode.Code{ErrInvalid} }

// Variable is the environment variable with the path of the configuration file.
const Variable = "XPKG_CONFIG"

// maxSize limits the size of a configuration file.
const maxSize = 1 << 20

// Tag is the key of the struct tag of the flags that a configuration file and variables can set.
const Tag = "config"

// File is a configuration file.
type File struct {
	// Path is the path of the file, which need not exist.
	Path string
	// Values are the values by the names of flags: strings, booleans and numbers, or lists of them.
	Values map[string]any
}

// Path returns the path of the configuration file: XPKG_CONFIG, or xpkg/config.yaml in XDG_CONFIG_HOME or ~/.config. It
// returns "" if there is no home folder.
func Path() string {
	if named := os.Getenv(Variable); named != "" {
		return named
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "xpkg", "config.yaml")
}

// Read reads the configuration file of the user. Only a file that XPKG_CONFIG names must exist.
func Read(ctx context.Context) (File, error) {
	f := File{Path: Path()}
	if f.Path == "" {
		return f, nil
	}
	raw, err := readFile(ctx, f.Path)
	if errors.Is(err, fs.ErrNotExist) && os.Getenv(Variable) == "" {
		return f, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return f, ErrInvalid.New(err, "cannot read the configuration").
			WithDo("Create the file, or unset the variable %s, which names it.", Variable)
	}
	if err != nil {
		return f, ErrInvalid.New(err, "cannot read the configuration")
	}
	f.Values, err = Parse(raw)
	if err != nil {
		return f, ErrInvalid.New(err, "%s is not a configuration", f.Path)
	}
	return f, nil
}

func readFile(ctx context.Context, path string) ([]byte, error) {
	in, err := fileutil.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, maxSize+1))
	if err == nil && len(raw) > maxSize {
		err = fmt.Errorf("%s is larger than 1 MiB", path)
	}
	return raw, err
}

// Parse parses a configuration file. It returns an error for a duplicate key, and for a value that is neither a scalar
// nor a list of scalars.
func Parse(raw []byte) (map[string]any, error) {
	var values map[string]any
	if err := yaml.UnmarshalStrict(raw, &values); err != nil {
		return nil, err
	}
	for key, value := range values {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, element := range list {
			switch element.(type) {
			case string, bool, float64, int64:
			default:
				return nil, fmt.Errorf("the value of %s is not text, a number, or a list of them", key)
			}
		}
	}
	return values, nil
}

// Check returns an error for a key that is not the name of one of the flags, and for a value that its flag does not
// accept.
func (f File) Check(flags map[string]*kong.Flag) error {
	keys := slices.Sorted(maps.Keys(flags))
	for _, key := range slices.Sorted(maps.Keys(f.Values)) {
		if flag := flags[key]; flag != nil {
			if err := checkValue(flag, f.Values[key]); err != nil {
				return ErrInvalid.New(err, "%s has an invalid value of the key %s", f.Path, key)
			}
			continue
		}
		err := ErrInvalid.New(nil, "%s contains the unknown key %s", f.Path, key)
		if meant := spelling.Alike(key, keys); len(meant) > 0 {
			return err.WithDo("Did you mean %s? %s", strings.Join(meant, " or "), ErrInvalid.Fix)
		}
		return err
	}
	return nil
}

// checkValue returns an error for a value that a flag does not accept. An empty value stands for the default.
func checkValue(flag *kong.Flag, value any) error {
	if value == "" {
		return nil
	}
	if allowed := strings.Split(flag.Enum, ","); flag.Enum != "" && !slices.Contains(allowed, Text(value)) {
		return fmt.Errorf(
			"%q is not one of %s", Text(value),
			strings.Join(slices.DeleteFunc(allowed, func(s string) bool { return s == "" }), ", "),
		)
	}
	if _, list := value.([]any); list && !flag.IsSlice() {
		return errors.New("it is a list, and the key has one value")
	}
	err := flag.Parse(kong.Scan().PushTyped(value, kong.FlagValueToken), reflect.New(flag.Target.Type()).Elem())
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "--"+flag.Name+": "))
	}
	return nil
}

// VariableOf returns the environment variable of a flag: --ca-file is XPKG_CA_FILE.
func VariableOf(flag string) string {
	return "XPKG_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Resolve implements [kong.Resolver]: it returns the value of a flag from its variable or the file.
func (f File) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !flag.Tag.Has(Tag) {
		return nil, nil
	}
	value, _ := f.Value(flag)
	return value, nil
}

// Validate implements [kong.Resolver].
func (f File) Validate(*kong.Application) error { return nil }

// Value returns the value of a flag that is not on the command line, and its origin: a variable or the file. It returns
// nil if the default applies.
func (f File) Value(flag *kong.Flag) (value any, origin string) {
	variable := VariableOf(flag.Name)
	if set := os.Getenv(variable); set != "" {
		return set, variable
	}
	value, ok := f.Values[flag.Name]
	if !ok || value == "" {
		return nil, ""
	}
	if strings.Contains(flag.PlaceHolder, "FILE") || strings.Contains(flag.PlaceHolder, "DIR") {
		return f.absolute(value), f.Path
	}
	return value, f.Path
}

// absolute returns paths of the file relative to its folder as absolute paths. A path can follow a host, as in
// HOST=FILE.
func (f File) absolute(value any) any {
	switch v := value.(type) {
	case string:
		host, path, ok := strings.Cut(v, "=")
		if !ok || strings.ContainsAny(host, `/\`) {
			host, path = "", v
		} else {
			host += "="
		}
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			if home, err := os.UserHomeDir(); err == nil {
				return host + filepath.Join(home, rest)
			}
		}
		if filepath.IsAbs(path) {
			return v
		}
		return host + filepath.Join(filepath.Dir(f.Path), path)
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = f.absolute(element)
		}
		return out
	}
	return value
}

// Text returns a value for display.
func Text(value any) string {
	if list, ok := value.([]any); ok {
		var words []string
		for _, element := range list {
			words = append(words, fmt.Sprint(element))
		}
		return strings.Join(words, ", ")
	}
	return fmt.Sprint(value)
}
