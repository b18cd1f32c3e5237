package cli

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/config"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// usageError returns the error of an invalid command line, with the syntax of the command.
func usageError(err error, program string, args []string) error {
	// The parser lists the empty value as a valid one, and reports the end of the line as EOL.
	why := strings.NewReplacer(`one of "",`, "one of ", `but got "EOL" (<EOL>)`, "but nothing is given").Replace(err.Error())
	why = withOrigin(why, args)
	failed := terminal.ErrUsage.New(errors.New(why), "%s %s", program, strings.Join(args, " "))
	var at *kong.ParseError
	if !errors.As(err, &at) || at.Context.Selected() == nil {
		return failed.WithDo("See the commands with `%s --help`.", program)
	}
	command := at.Context.Selected()
	failed = terminal.ErrUsage.New(errors.New(withoutCommand(why, command)), "%s %s", program, strings.Join(args, " "))
	if fix := replacedFlag(wordsOf(command), args); fix != "" && strings.Contains(why, "unknown flag") {
		return failed.WithDo("%s", namedAs(program, fix))
	}
	if fix := replacedUse(why, args); fix != "" {
		return failed.WithDo("%s", namedAs(program, fix))
	}
	name := program + " " + wordsOf(command)
	do := "Write `" + name + strings.TrimPrefix(command.Summary(), command.Path()) + "`"
	if lines := examplesOf(program, command); len(lines) > 0 {
		do += ", such as `" + lines[0] + "`"
	}
	return failed.WithDo("%s. See more with `%s --help`.", do, name)
}

// withOrigin returns the message of an error with the variable that has set a flag, if the flag is not on the command line.
func withOrigin(why string, args []string) string {
	flag, rest, _ := strings.Cut(why, " ")
	flag, colon := strings.CutSuffix(flag, ":")
	name, isLong := strings.CutPrefix(flag, "--")
	variable := config.VariableOf(name)
	typed := slices.ContainsFunc(args, func(arg string) bool { return arg == flag || strings.HasPrefix(arg, flag+"=") })
	if !isLong || typed || os.Getenv(variable) == "" {
		return why
	}
	if colon {
		variable += ":"
	}
	return variable + " " + rest
}

// withoutCommand returns the message of an error without the command and its aliases, which the parser puts before some messages.
func withoutCommand(why string, command *kong.Node) string {
	rest, ok := strings.CutPrefix(why, wordsOf(command))
	if !ok {
		return why
	}
	if aliases, after, found := strings.Cut(rest, ")"); found && strings.HasPrefix(aliases, " (") {
		rest = after
	}
	if message, ok := strings.CutPrefix(rest, ": "); ok {
		return message
	}
	return why
}
