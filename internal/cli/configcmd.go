package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/config"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
)

type configCmd struct {
	View configViewCmd `cmd:"" help:"Show the values of the configuration file and of XPKG_* variables, and their origin."`
}

type configViewCmd struct {
	view.ListOutputFlag
}

// setting is a flag that the configuration can set.
type setting struct {
	Key      string `json:"key"`
	Value    any    `json:"value,omitempty"`
	Origin   string `json:"origin"`
	Variable string `json:"variable"`
}

// Run prints the settings, and fails after that if the file is invalid.
func (c configViewCmd) Run(env *terminal.Env) error {
	file, invalid := readConfig(env)
	if invalid != nil && !errors.Is(invalid, config.ErrInvalid) {
		return invalid
	}
	flags, err := configurable()
	if err != nil {
		return err
	}
	settings, names := []setting{}, slices.Sorted(maps.Keys(flags))
	table := view.Table{Header: []string{"KEY", "VALUE", "ORIGIN"}, WideHeader: []string{"VARIABLE", "MEANING"}}
	for _, name := range names {
		s := setting{Key: name, Variable: config.VariableOf(name)}
		if s.Value, s.Origin = file.Value(flags[name]); s.Value == nil {
			s.Origin = "default"
			if flags[name].HasDefault {
				s.Value = flags[name].Default
			}
		}
		settings = append(settings, s)
		text := "-"
		if s.Value != nil {
			text = config.Text(s.Value)
		}
		table.Rows = append(table.Rows, []string{name, text, s.Origin, s.Variable, flags[name].Help})
	}
	if _, err := os.Stat(file.Path); err != nil && c.Output == "" && invalid == nil {
		fmt.Fprintf(
			env.Stderr, "note: no configuration file exists; it would be %s\n",
			terminal.Safe(cmp.Or(file.Path, "in a home folder")),
		)
	}
	return cmp.Or(c.Print(env.Stdout, view.List{Value: settings, Names: names, Table: table}), invalid)
}

// configurable returns the flags that the configuration can set, by name.
func configurable() (map[string]*kong.Flag, error) {
	parser, err := kong.New(&grammar{}, kong.Name("xpkg"))
	if err != nil {
		return nil, err
	}
	out := map[string]*kong.Flag{}
	add := func(flags []*kong.Flag) {
		for _, f := range flags {
			if f.Tag.Has(config.Tag) {
				out[f.Name] = f
			}
		}
	}
	add(parser.Model.Flags)
	for _, command := range parser.Model.Leaves(true) {
		add(command.Flags)
	}
	return out, nil
}

// readConfig reads and checks the configuration file.
func readConfig(env *terminal.Env) (config.File, error) {
	file, err := config.Read(env.Context)
	if err != nil || len(file.Values) == 0 {
		return file, err
	}
	flags, err := configurable()
	if err != nil {
		return file, err
	}
	return file, file.Check(flags)
}

// configOf returns the configuration of a command. The manager takes its configuration only from its flags: it runs for
// a cluster and not for a user.
func configOf(env *terminal.Env, args []string) (config.File, error) {
	if len(args) > 0 && slices.Contains([]string{"manager", "runtime-init", "__complete", "__completeNoDesc"}, args[0]) {
		return config.File{}, nil
	}
	file, err := readConfig(env)
	if errors.Is(err, config.ErrInvalid) && len(args) > 1 && args[0] == "config" {
		return config.File{}, nil // The command shows the keys and the error.
	}
	return file, err
}
