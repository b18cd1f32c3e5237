package validation

import (
	"cmp"
	"strconv"
	"strings"
	"text/template/parse"
)

// validateGoTemplate validates the syntax of a template in the input of function-go-templating.
func (c *composition) validateGoTemplate(at string, input map[string]any) {
	text, ok := Object(input["inline"])["template"].(string)
	if kind := KindOf(input); !ok || kind.Group != "gotemplating.fn.crossplane.io" {
		return
	}
	delims := Object(input["delims"])
	left, _ := delims["left"].(string)
	right, _ := delims["right"].(string)
	line, problem := TemplateProblem(text, left, right)
	if problem == "" {
		return
	}
	c.report(c.resource, ErrInvalidTemplate, at+"inline.template", problem)
	if strings.Contains(strings.TrimSpace(text), "\n") {
		c.Findings[len(c.Findings)-1].Line += line // The text of a block begins in the line after its field.
	}
}

// TemplateProblem returns the first mistake in the syntax of a Go template with its line, or "".
func TemplateProblem(text, left, right string) (line int, problem string) {
	const name = "template"
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck
	_, err := tree.Parse(text, cmp.Or(left, "{{"), cmp.Or(right, "}}"), map[string]*parse.Tree{})
	if err == nil {
		return 0, ""
	}
	rest := strings.TrimPrefix(err.Error(), name+": "+name+":")
	rest = strings.TrimPrefix(rest, "template: "+name+":")
	number, problem, found := strings.Cut(rest, ": ")
	line, notNumber := strconv.Atoi(number)
	if !found || notNumber != nil {
		return 1, err.Error()
	}
	return min(line, strings.Count(strings.TrimRight(text, "\n"), "\n")+1), problem
}
