package cli

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/config"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// usageError returns the error of an invalid command line, with the syntax of the command.
func usageError(err error, program string, args []string) error {
	// The parser lists the empty value as a valid one, and reports the end of the line as EOL.
	why := strings.NewReplacer(`one of "",`, "one of ", `but got "EOL" (<EOL>)`, "but nothing is given").
		Replace(err.Error())
	why = withOrigin(why, args)
	failed := terminal.ErrUsage.New(errors.New(why), "%s %s", program, strings.Join(args, " "))
	var at *kong.ParseError
	if !errors.As(err, &at) {
		return failed.WithDo("See the commands with `%s --help`.", program)
	}
	command := at.Context.Selected()
	why = withSuggestions(why, at.Context.Model, command)
	if command == nil {
		if fix := replacedFlag("", args); fix != "" && strings.HasPrefix(why, unknownFlag) {
			return failed.WithDo("%s", namedAs(program, fix))
		}
		do := "See the commands with `" + program + " --help`."
		if strings.HasPrefix(why, unknownFlag) {
			do = "Write flags after the command. " + do
		}
		// The message ends with the word if no command of xpkg is similar.
		if word, ok := strings.CutPrefix(why, unexpectedArgument+" "); ok {
			if meant, ok := replacementAlike(word); ok {
				why, do = why+", did you mean "+meant.command+"?", namedAs(program, meant.fix)
			}
		}
		return terminal.ErrUsage.New(errors.New(asUnknownCommand(why)), "%s %s", program, strings.Join(args, " ")).
			WithDo("%s", do)
	}
	message := withoutCommand(why, command)
	if len(command.Children) > 0 {
		message = asUnknownCommand(message)
	}
	failed = terminal.ErrUsage.New(errors.New(message), "%s %s", program, strings.Join(args, " "))
	if fix := replacedFlag(wordsOf(command), args); fix != "" && strings.Contains(why, unknownFlag) {
		return failed.WithDo("%s", namedAs(program, fix))
	}
	if fix := replacedUse(why, args); fix != "" {
		return failed.WithDo("%s", namedAs(program, fix))
	}
	var advised *errcode.Error
	if errors.As(err, &advised) && advised.Do != "" {
		return failed.WithDo("%s", namedAs(program, advised.Do))
	}
	name := program + " " + wordsOf(command)
	do := "Write `" + name + strings.TrimPrefix(command.Summary(), command.Path()) + "`"
	if lines := examplesOf(program, command); len(lines) > 0 {
		do += ", such as `" + lines[0] + "`"
	}
	return failed.WithDo("%s. See more with `%s --help`.", do, name)
}

// unknownFlag and unexpectedArgument begin the messages of the parser about words that it does not know.
const unknownFlag, unexpectedArgument = "unknown flag", "unexpected argument"

// asUnknownCommand returns a message of the parser at a place where only a command can follow.
func asUnknownCommand(why string) string {
	if rest, ok := strings.CutPrefix(why, unexpectedArgument+" "); ok {
		return "unknown command " + rest
	}
	return why
}

// parserSuggestion is the suggestion in a message of the parser. It suggests flags of one letter, and words that are
// hardly similar.
var parserSuggestion = lazyregexp.New(`, did you mean (one of )?"[^?]*"\?`)

// withSuggestions returns a message of the parser with the similar flags or commands that exist. The command is nil
// before the parser has found one.
func withSuggestions(why string, app *kong.Application, command *kong.Node) string {
	why = parserSuggestion().ReplaceAllString(why, "")
	if command == nil {
		command = app.Node
	}
	var known []string
	word, found := afterLast(why, unknownFlag+" ")
	if found {
		for _, f := range flagsOf(command) {
			if f.Hidden {
				continue
			}
			known = append(known, "--"+f.Name)
			if f.Tag.Negatable != "" {
				known = append(known, "--no-"+f.Name)
			}
		}
	} else if word, found = afterLast(why, unexpectedArgument+" "); found {
		for _, c := range command.Children {
			if !c.Hidden {
				known = append(append(known, c.Name), c.Aliases...)
			}
		}
	}
	similar := spelling.Typo(word, known)
	switch len(similar) {
	case 0:
		return why
	case 1:
		return why + ", did you mean " + similar[0] + "?"
	}
	return why + ", did you mean one of " + strings.Join(similar, ", ") + "?"
}

// afterLast returns the first word after the last occurrence of a text.
func afterLast(s, text string) (word string, ok bool) {
	i := strings.LastIndex(s, text)
	if i < 0 {
		return "", false
	}
	word, _, _ = strings.Cut(s[i+len(text):], " ")
	return word, true
}

// withOrigin returns the message of an error with the variable that has set a flag, if the flag is not on the command
// line.
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

// withoutCommand returns the message of an error without the command and its aliases, which the parser puts before some
// messages.
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
