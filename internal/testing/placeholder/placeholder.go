// Package placeholder finds the placeholders in messages: a user cannot paste a command that contains one.
package placeholder

import (
	"regexp"
	"slices"
)

var (
	// quoted is a command between backquotes.
	quoted = regexp.MustCompile("`[^`]+`")
	// word is a word of a command in capitals, such as NAME, KIND/NAME, or an ellipsis. The syntax of a command, as in
	// usage errors, has words in angle brackets.
	word = regexp.MustCompile(`(?:^|[\s=/:\[])([A-Z]{2,}|…)(?:$|[\s=/:\]@` + "`" + `])`)
	// flag is a flag with a word in capitals as its value.
	flag = regexp.MustCompile(`--[a-z][a-z-]*[ =]\[?([A-Z]{2,})\b`)
)

// variables are the environment variables in commands.
var variables = []string{"KUBECONFIG", "HOME", "PATH"}

// Find returns the placeholders in the commands and flags of a message.
func Find(message string) []string {
	var out []string
	add := func(text string, pattern *regexp.Regexp) {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(variables, m[1]) {
				out = append(out, m[1])
			}
		}
	}
	for _, command := range quoted.FindAllString(message, -1) {
		add(command, word)
	}
	add(message, flag)
	return out
}
