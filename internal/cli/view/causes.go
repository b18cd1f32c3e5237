package view

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// Finding is a statement about a subject, with its remedy.
type Finding struct {
	// Subject is the name of an object in the text, such as provider/boats. If it is empty, it is the only word in which
	// texts differ.
	Subject string
	// Cause is the same for findings that are one message although their texts differ. It can be empty.
	Cause string
	Text  string
	// Fix is the remedy, or empty.
	Fix string
}

// Cause is the message for all findings with the same cause: the text of the first one, which also names the other
// subjects, and a remedy for all of them.
type Cause struct {
	// Members are the indexes of the findings.
	Members   []int
	Text, Fix string
}

// ByCause returns a message for each cause, in the order of the first findings. A message names at most a number of
// other subjects, and all of them if it is negative.
func ByCause(all []Finding, most int) []Cause {
	var out []Cause
	merged, keys := make([]bool, len(all)), make([]string, len(all))
	for i, f := range all {
		if keys[i] = f.Cause; f.Cause == "" && f.Subject != "" {
			keys[i] = template(f, f.Text) + template(f, f.Fix)
		}
	}
	for i, first := range all {
		if merged[i] {
			continue
		}
		group, also, members := []Finding{first}, []string{}, []int{i}
		for j := i + 1; j < len(all); j++ {
			if merged[j] || keys[i] != keys[j] {
				continue
			}
			subject, isSame := all[j].Subject, true
			if keys[j] == "" {
				subject, isSame = sameExceptName(&group[0], &all[j])
			}
			if !isSame {
				continue
			}
			merged[j], members = true, append(members, j)
			if other := all[j]; subject != "" && subject != group[0].Subject && !slices.Contains(also, subject) {
				other.Subject = subject
				group, also = append(group, other), append(also, subject)
			}
		}
		out = append(out, Cause{Members: members, Text: textOf(group, also, most), Fix: fixOf(group)})
	}
	return out
}

// sameExceptName reports whether two findings differ in a name only. It returns that of the second one, which is empty
// if both are equal, and sets that of the first one.
func sameExceptName(a, b *Finding) (subject string, isSame bool) {
	if a.Text == b.Text && a.Fix == b.Fix {
		return "", true
	}
	was, is := differing(a.Text, b.Text)
	if was == "" || a.Subject != "" && a.Subject != was {
		return "", false
	}
	for _, name := range []func(string) string{func(s string) string { return s }, path.Base} {
		if strings.ReplaceAll(a.Text, name(was), name(is)) == b.Text &&
			strings.ReplaceAll(a.Fix, name(was), name(is)) == b.Fix {
			a.Subject = was
			return is, true
		}
	}
	return "", false
}

// differing returns the first words in which two texts with the same number of words differ, without punctuation, or
// "".
func differing(a, b string) (was, is string) {
	as, bs := strings.Fields(a), strings.Fields(b)
	if len(as) != len(bs) {
		return "", ""
	}
	for i := range as {
		if as[i] != bs[i] {
			const punctuation = ".,:;()'\"`"
			return strings.Trim(as[i], punctuation), strings.Trim(bs[i], punctuation)
		}
	}
	return "", ""
}

// Placeholders for a subject, and for its name without the kind.
const subjectPlace, namePlace = "\x00", "\x01"

// template returns a text of a finding with placeholders for its subject.
func template(f Finding, text string) string {
	if f.Subject == "" {
		return text
	}
	name := regexp.MustCompile(`\b` + regexp.QuoteMeta(path.Base(f.Subject)) + `\b`)
	return name.ReplaceAllString(strings.ReplaceAll(text, f.Subject, subjectPlace), namePlace)
}

// textOf returns the text of the first finding of a group, with the other subjects.
func textOf(group []Finding, also []string, most int) string {
	first := group[0]
	if len(also) == 0 {
		return first.Text
	}
	if most < 0 {
		most = len(also)
	}
	why := "also "
	if first.Cause != "" &&
		slices.ContainsFunc(group, func(f Finding) bool { return template(f, f.Text) != template(first, first.Text) }) {
		why = "for similar reasons also "
	}
	text, isSentence := strings.CutSuffix(first.Text, ".")
	text += " (" + why + wording.Few(also, most, ", ") + ")"
	if isSentence {
		text += "."
	}
	return text
}

// fixOf returns the remedies for all findings of a group: one that names all subjects, or the different ones.
func fixOf(group []Finding) string {
	var subjects, names, fixes []string
	for _, f := range group {
		subjects, names = append(subjects, f.Subject), append(names, path.Base(f.Subject))
		if fix := template(f, f.Fix); !slices.Contains(fixes, fix) {
			fixes = append(fixes, fix)
		}
	}
	if len(fixes) > 1 {
		fixes = nil
		for _, f := range group {
			fixes = append(fixes, f.Fix)
		}
	}
	fix := strings.Join(slices.Compact(fixes), "\n")
	return strings.NewReplacer(subjectPlace, strings.Join(subjects, " "), namePlace, strings.Join(names, " ")).Replace(fix)
}

// Once shortens messages that were written before, such as those of several conditions of an object.
type Once struct{ written []string }

// SeeAbove refers to a text that was written before.
const SeeAbove = "(see above)"

// shortMessage is the length of messages that are always written.
const shortMessage = 40

// Text returns a message, or a reference to it if a former one contains it.
func (o *Once) Text(message string) string {
	message = strings.TrimSpace(message)
	if len(message) <= shortMessage {
		return message
	}
	if slices.ContainsFunc(o.written, func(text string) bool { return strings.Contains(text, message) }) {
		return SeeAbove
	}
	o.written = append(o.written, message)
	return message
}

// MostNamed is the number of other subjects that a message on a terminal names.
const MostNamed = 3

// Most returns the number of other subjects that a message of a writer names: few on a terminal, and elsewhere all.
func Most(w io.Writer) int {
	if terminal.IsTerminal(w) {
		return MostNamed
	}
	return -1
}

// Merge returns notes with one for each cause, as [ByCause] does: notes that differ in a name are one note.
func Merge(notes []string, most int) []string {
	all := make([]Finding, len(notes))
	for i, note := range notes {
		all[i].Text = note
	}
	var out []string
	for _, c := range ByCause(all, most) {
		out = append(out, c.Text)
	}
	return out
}

// Notes prints notes that are not empty, one for each cause.
func Notes(w io.Writer, notes ...string) {
	for _, note := range Merge(notes, Most(w)) {
		if note != "" {
			fmt.Fprintf(w, "note: %s\n", terminal.Safe(note))
		}
	}
}
