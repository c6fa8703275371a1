/**
 * Notifications about sessions that need the user. The window's title and icon always show them; desktop notifications
 * and sounds are opt-in.
 */

import { recall, remember } from '../shared/storage.js';
import { mostUrgent, windowTitle } from './attention.js';
import { openMenu } from './menu.js';

/**
 * @typedef {import('./attention.js').NewlyNeeded} NewlyNeeded
 * @typedef {{ desktop: boolean, sound: boolean }} Choice
 */

const KEY = 'liminal:notify';
const SAYS = { waiting: 'needs your answer', failed: 'failed', finished: 'finished' };

/**
 * @param {HTMLButtonElement} button
 * @param {{ open: (sessionId: string) => void, refuse: (text: string) => void }} actions
 */
export function startNotify(button, { open, refuse }) {
  /** @type {Choice} */
  let choice = recall(KEY, asChoice, { desktop: false, sound: false });
  let shownIcon = '';

  /** @param {Partial<Choice>} change */
  const choose = (change) => {
    choice = { ...choice, ...change };
    remember(KEY, choice);
  };
  const chooseDesktop = async () => {
    if (choice.desktop) return choose({ desktop: false });
    const allowed = 'Notification' in window && (await Notification.requestPermission()) === 'granted';
    if (allowed) choose({ desktop: true });
    else refuse('The browser does not allow notifications from this page.');
    return undefined;
  };
  const chooseSound = () => {
    choose({ sound: !choice.sound });
    if (choice.sound) chime();
  };
  button.addEventListener('click', () =>
    openMenu(button, 'When a session needs you', [
      { label: 'Desktop notification', checked: choice.desktop, run: chooseDesktop },
      { label: 'Sound', checked: choice.sound, run: chooseSound },
    ]),
  );

  return {
    /** Notifies about sessions that have just begun to need the user. @param {NewlyNeeded[]} sessions */
    notify: (sessions) => {
      if (sessions.length === 0) return;
      if (choice.sound) chime();
      if (!choice.desktop || !('Notification' in window) || Notification.permission !== 'granted') return;
      for (const { session, mark } of sessions) {
        // Other windows show the same notification; the shared tag merges them into one.
        const notification = new Notification(`${session.title} ${SAYS[mark]}`, { tag: session.id });
        notification.onclick = () => {
          window.focus();
          open(session.id);
          notification.close();
        };
      }
    },
    /** @param {import('./attention.js').Counts} counts @param {string | undefined} inView */
    show: (counts, inView) => {
      const title = windowTitle(counts, inView);
      if (document.title !== title) document.title = title;
      const { mark, number } = mostUrgent(counts);
      const icon = number === 0 ? '/favicon.svg' : numbered(number, `var(--state-${mark})`);
      if (icon === shownIcon) return;
      shownIcon = icon;
      document.querySelector('link[rel="icon"]')?.setAttribute('href', icon);
    },
  };
}

/** An icon with a number on it. @param {number} number @param {string} variable  custom property of theme.css */
function numbered(number, variable) {
  const [colour, ground] = [resolved(variable), resolved('var(--ground-deep)')];
  const text = number > 9 ? '9+' : String(number);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8" fill="${colour}"/><text x="8" y="11.6" font-family="sans-serif" font-size="10" font-weight="700" text-anchor="middle" fill="${ground}">${text}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

/** The computed value of a theme colour, because an icon cannot use custom properties. @param {string} colour */
function resolved(colour) {
  const probe = document.createElement('span');
  probe.style.color = colour;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** Plays two short tones. */
function chime() {
  const audio = new AudioContext();
  const end = audio.currentTime + 0.4;
  for (const [at, pitch] of [
    [0, 660],
    [0.14, 880],
  ]) {
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0.08, audio.currentTime + at);
    volume.gain.exponentialRampToValueAtTime(0.0001, audio.currentTime + at + 0.25);
    tone.connect(volume).connect(audio.destination);
    tone.start(audio.currentTime + at);
    tone.stop(end);
  }
  setTimeout(() => audio.close(), 800);
}

/** @param {unknown} value @returns {Choice | undefined} */
function asChoice(value) {
  if (typeof value !== 'object' || value === null) return undefined;
  const { desktop, sound } = /** @type {Record<string, unknown>} */ (value);
  return { desktop: desktop === true, sound: sound === true };
}
