package validation

import (
	"cmp"
	"strconv"
	"strings"
	"text/template/parse"
)

// validateGoTemplates validates the syntax of the templates in the input of function-go-templating.
func (c *composition) validateGoTemplates(at string, input map[string]any) {
	if KindOf(input).Group != "gotemplating.fn.crossplane.io" {
		return
	}
	inline := Object(input["inline"])
	if text, ok := inline["template"].(string); ok {
		c.validateGoTemplate(at+"inline.template", input, text)
		return
	}
	// The function reads the templates as one text: a mistake can be in any of them, unless there is only one.
	if list, _ := inline["templates"].([]any); len(list) == 1 {
		text, _ := list[0].(string)
		c.validateGoTemplate(at+"inline.templates[0]", input, text)
	}
}

func (c *composition) validateGoTemplate(at string, input map[string]any, text string) {
	delims := Object(input["delims"])
	left, _ := delims["left"].(string)
	right, _ := delims["right"].(string)
	line, problem := TemplateProblem(text, left, right)
	if problem == "" {
		return
	}
	c.report(c.resource, ErrInvalidTemplate, at, problem)
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
