package cli

import (
	"errors"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// usageError says why a command line cannot be understood, and what the command takes.
func usageError(err error, program string, args []string) error {
	// The parser names what is no answer among the answers, and the end of the line as
	// it calls it itself.
	why := strings.NewReplacer(`one of "",`, "one of ", `but got "EOL" (<EOL>)`, "and nothing is there").Replace(err.Error())
	failed := terminal.ErrUsage.New(errors.New(why), "%s %s", program, strings.Join(args, " "))
	var at *kong.ParseError
	if !errors.As(err, &at) || at.Context.Selected() == nil {
		return failed.WithDo("See the commands with `%s --help`.", program)
	}
	command := at.Context.Selected()
	name := program + " " + wordsOf(command)
	do := "Write `" + name + strings.TrimPrefix(command.Summary(), command.Path()) + "`"
	if lines := examplesOf(program, command); len(lines) > 0 {
		do += ", such as `" + lines[0] + "`"
	}
	return failed.WithDo("%s. See more with `%s --help`.", do, name)
}
