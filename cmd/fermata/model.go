package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/spf13/cobra"

	"fermata/agent/model/rehearsal"
)

// modelFlags are what `fermata model` is told.
type modelFlags struct {
	listen, scenario, record string
	rate                     float64
}

// newModelCommand serves the rehearsal model, or a scripted one, as an OpenAI-compatible endpoint on this machine.
func newModelCommand() *cobra.Command {
	var f modelFlags
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Serve the built-in or a scripted model on this machine, for tests and demonstrations",
		Long: `Serve the built-in rehearsal model, or the scripted one in a scenario file, as an OpenAI-compatible endpoint. The first
line on stdout is the base URL to configure. It listens on loopback only and asks for no key.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			handler, err := f.handler()
			if err != nil {
				return err
			}
			l, err := listenLoopback(cmd.Context(), f.listen)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "http://%s/v1\n", l.Addr()); err != nil {
				_ = l.Close()
				return fmt.Errorf("print the base URL: %w", err)
			}
			return serveModel(ctx, l, handler)
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address and port; port 0 takes a free one")
	cmd.Flags().StringVar(&f.scenario, "scenario", "", "play the replies in this file")
	cmd.Flags().Float64Var(&f.rate, "rate", rehearsal.DefaultRate, "words per second of the rehearsal model; 0 is as fast as possible")
	cmd.Flags().StringVar(&f.record, "record", "", "write the bodies of requests to this folder, as 0001.json, 0002.json …")
	return cmd
}

func (f *modelFlags) handler() (http.Handler, error) {
	var handler http.Handler
	if f.scenario != "" {
		sc, err := rehearsal.ParseFile(f.scenario)
		if err != nil {
			return nil, err
		}
		handler = rehearsal.NewServer(sc)
	} else {
		o := rehearsal.Options{Rate: f.rate}
		if f.rate <= 0 {
			o.Rate = -1
		}
		handler = rehearsal.New(o)
	}
	if f.record == "" {
		return handler, nil
	}
	if err := os.MkdirAll(f.record, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for bodies: %w", err)
	}
	return rehearsal.Recording(handler, func(n int, body []byte) error {
		return os.WriteFile(filepath.Join(f.record, fmt.Sprintf("%04d.json", n)), body, 0o600)
	}), nil
}

// listenLoopback listens at a host and port of this machine that others cannot reach. Any other address is a wrong usage.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usage("--listen %s is no host:port", address)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, usage("--listen %s is not on loopback: the model has no key, so only this machine may reach it", address)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// serveModel serves until ctx ends, then closes every connection.
func serveModel(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ErrorLog: log.New(os.Stderr, "", log.LstdFlags)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the model: %w", err)
	}
	return nil
}
