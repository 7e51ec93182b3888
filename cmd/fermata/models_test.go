package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"fermata/cmd/internal/peer"
)

func TestTheModelsThatCanBeChosenAreListed(t *testing.T) {
	var key atomic.Value
	lists := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key.Store(r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"object":"list","data":[{"id":"zeta"},{"id":"alpha/7b"},{"id":"zeta"},{"object":"nothing"}]}`)
	}))
	defer lists.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.Header.Get("Authorization"), http.StatusForbidden)
	}))
	defer refuses.Close()
	e := newUser(t, "reply\nsay x\n", fmt.Sprintf(
		"[providers.lists]\nkind = \"openai-compatible\"\nbase_url = %q\nkey_env = \"LISTS_KEY\"\n"+
			"[providers.refuses]\nkind = \"openai-compatible\"\nbase_url = %q\nkey_env = \"LISTS_KEY\"\n", lists.URL, refuses.URL))
	e.start(peer.Options{Env: []string{"LISTS_KEY=sesame"}})
	e.Initialize(e.root, nil)
	var r struct {
		Model     string
		Models    []struct{ Name, From string }
		Unreached []string
	}
	e.Must("fermata/model/list", nil, &r)
	var names []string
	for _, m := range r.Models {
		names = append(names, m.Name)
	}
	if got, want := strings.Join(names, " "), "scripted/model lists/alpha/7b lists/zeta rehearsal/rehearsal"; got != want {
		t.Errorf("the models are %s, want %s", got, want)
	}
	if r.Model != "scripted/model" || key.Load() != "Bearer sesame" {
		t.Errorf("the model is %s, the key was sent as %q", r.Model, key.Load())
	}
	if all := strings.Join(r.Unreached, "\n"); !strings.Contains(all, "refuses did not list its models: HTTP 403") || strings.Contains(all, "sesame") { // guards M6
		t.Errorf("unreached: %q", r.Unreached)
	}
	e.quit()
}
