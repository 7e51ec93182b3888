package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"fermata/rpc/wire"
)

// modelsDeadline is how long a provider may take to list its models: somebody waits with an open menu.
const modelsDeadline = 3 * time.Second

// modelsLimit is the longest list that is read, in bytes.
const modelsLimit = 8 << 20

// models are the models that can be chosen: the configured one, what is built in, and what the configured providers list.
func (a *app) models(ctx context.Context) (wire.ModelListResult, error) {
	s, err := a.settings()
	if err != nil {
		return wire.ModelListResult{}, err
	}
	r := wire.ModelListResult{Model: s.model, Models: []wire.Model{{Name: s.model, From: s.from}}}
	add := func(name, from string) {
		if !slices.ContainsFunc(r.Models, func(m wire.Model) bool { return m.Name == name }) {
			r.Models = append(r.Models, wire.Model{Name: name, From: from})
		}
	}
	names := slices.Clone(s.config.order)
	if using, _ := splitModel(s.model); !slices.Contains(names, using) {
		names = append(names, using)
	}
	type listed struct {
		models []string
		err    error
	}
	lists := make([]listed, len(names))
	var work sync.WaitGroup
	for i, name := range names {
		p := s.provider(name, environment)
		if p.kind == kindRehearsal {
			continue
		}
		work.Go(func() { // ends with the provider's answer, at the latest at the deadline
			lists[i].models, lists[i].err = a.listModels(ctx, p)
		})
	}
	work.Wait()
	for i, name := range names {
		for _, m := range lists[i].models {
			add(name+"/"+m, "listed by "+name)
		}
		if err := lists[i].err; err != nil {
			r.Unreached = append(r.Unreached, fmt.Sprintf("%s did not list its models: %v", name, err))
		}
	}
	add(kindRehearsal+"/"+kinds[kindRehearsal].model, "built in: no AI, for trying things out")
	return r, nil
}

// listModels asks a provider for the names of its models. What it says beside them is not told: it may echo a key.
func (a *app) listModels(ctx context.Context, p provider) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, modelsDeadline)
	defer cancel()
	if err := checkBaseURL(p.baseURL); err != nil {
		return nil, fmt.Errorf("its address %w", err)
	}
	file, err := a.configFile()
	if err != nil {
		return nil, err
	}
	key, err := newKeySource(p, file).Key(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(p.baseURL, "/")+"/models", nil)
	if err != nil {
		return nil, fmt.Errorf("the address is wrong: %w", err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("it cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, modelsLimit)).Decode(&list); err != nil {
		return nil, fmt.Errorf("the list is no JSON of the usual form")
	}
	var names []string
	for _, m := range list.Data {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
