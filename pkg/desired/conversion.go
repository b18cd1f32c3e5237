package desired

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
)

// Service is the address of the webhook server of a package runtime.
type Service struct {
	Name      string
	Namespace string
}

const (
	// WebhookPort is the port of the Service of every package.
	WebhookPort = 9443
	// conversionPath is the default path of the conversion webhook.
	conversionPath = "/convert"
)

// withConversion adds the service of the package to a CRD with a conversion webhook. Package authors omit it
// because they do not know it.
func withConversion(raw []byte, webhooks Service, authorities []byte) ([]byte, error) {
	definition, err := decode(raw)
	if err != nil {
		return nil, err
	}
	config, err := nested(definition, "spec", "conversion", "webhook", "clientConfig")
	if err != nil {
		return nil, err
	}
	if err := setClientConfig(config, webhooks, authorities, conversionPath); err != nil {
		return nil, err
	}
	return json.Marshal(definition)
}

// withWebhooks names the service of the package in each webhook of a configuration, and excludes the requests
// that webhooks of packages must not deny.
func withWebhooks(raw []byte, webhooks Service, authorities []byte) ([]byte, error) {
	configuration, err := decode(raw)
	if err != nil {
		return nil, err
	}
	all, ok := configuration["webhooks"].([]any)
	if !ok && configuration["webhooks"] != nil {
		return nil, errors.New("webhooks is not a list")
	}
	for i := range all {
		webhook, ok := all[i].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("webhooks[%d] is not an object", i)
		}
		config, err := nested(webhook, "clientConfig")
		if err != nil {
			return nil, fmt.Errorf("webhooks[%d]: %w", i, err)
		}
		if err := setClientConfig(config, webhooks, authorities, ""); err != nil {
			return nil, fmt.Errorf("webhooks[%d]: %w", i, err)
		}
		exempt(webhook)
	}
	return json.Marshal(configuration)
}

// setClientConfig replaces the address of a webhook with the address of the runtime. It keeps only the path
// of the package; usual is the default path.
func setClientConfig(config map[string]any, webhooks Service, authorities []byte, usual string) error {
	path := usual
	if text, ok := config["url"].(string); ok {
		if u, err := url.Parse(text); err == nil && u.Path != "" && u.Path != "/" {
			path = u.Path
		}
	}
	service, err := nested(config, "service")
	if err != nil {
		return err
	}
	if text, ok := service["path"].(string); ok && text != "" {
		path = text
	}
	delete(config, "url")
	delete(config, "caBundle")
	config["service"] = map[string]any{"name": webhooks.Name, "namespace": webhooks.Namespace, "port": WebhookPort}
	if path != "" {
		config["service"].(map[string]any)["path"] = path
	}
	if len(authorities) > 0 {
		config["caBundle"] = authorities
	}
	return nil
}

// decode keeps the text of numbers, because a schema can have numbers that a float cannot represent.
func decode(raw []byte) (map[string]any, error) {
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err := d.Decode(&out)
	return out, err
}

// nested returns the map at a path, and creates missing maps on the path.
func nested(m map[string]any, path ...string) (map[string]any, error) {
	for _, key := range path {
		if m[key] == nil {
			m[key] = map[string]any{}
		}
		next, ok := m[key].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not an object", key)
		}
		m = next
	}
	return m, nil
}
