// Package wording puts numbers, lists, sentences and words for a shell into messages.
package wording

import (
	"fmt"
	"strings"
)

// Count is "1 package" or "3 packages".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	for _, end := range []string{"cy", "ry"} {
		if strings.HasSuffix(noun, end) {
			return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
		}
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Few joins the first words of a list and counts the rest: "a, b and 3 more", or "a; b;
// and 3 more" with another separator than a comma.
func Few(words []string, most int, separator string) string {
	if len(words) <= most {
		return strings.Join(words, separator)
	}
	and := " and"
	if separator != ", " {
		and = separator + "and"
	}
	return fmt.Sprintf("%s%s %d more", strings.Join(words[:most], separator), and, len(words)-most)
}

// ShellWord returns a string as one word of a POSIX shell.
func ShellWord(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\n'\"$\\`&|;<>()*?[]#~!{}") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// RestartManager returns the commands that restart a manager with further flags: the manager of this machine, and that
// of a cluster.
func RestartManager(flags ...string) string { return RestartEither(flags, flags) }

// RestartEither is like RestartManager for flags that differ: those of the manager of this machine, and those of a
// manager in a cluster. Both start without the flags that the manager has now.
func RestartEither(local, cluster []string) string {
	return restartLocal(local) + ", or in a cluster with " + RestartClusterManager(cluster...) + otherFlags
}

// RestartLocal is like RestartManager for the manager of this machine.
func RestartLocal(flags ...string) string { return restartLocal(flags) + otherFlags }

const otherFlags = "; repeat the other flags with which it was started, such as --data-dir: `xpkg down` prints those of this machine"

func restartLocal(flags []string) string {
	return "`xpkg down` and `xpkg up --detach" + shellWords("", flags) + "`"
}

// RestartClusterManager returns the command that restarts the manager of a cluster with further flags.
func RestartClusterManager(flags ...string) string {
	return "`xpkg bootstrap --apply" + shellWords("--manager-arg=", flags) + "`"
}

// shellWords returns words of a shell, each with a prefix and after a space.
func shellWords(prefix string, words []string) string {
	var out strings.Builder
	for _, word := range words {
		out.WriteString(" " + ShellWord(prefix+word))
	}
	return out.String()
}
